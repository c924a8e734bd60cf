import polars as pl, numpy as np
d="/work/shared/data/"
sel=pl.read_csv(d+"gras/selected_images_fairface.csv")
print(sel.group_by("age","gender","race").len().select("len").describe())
print(sel["age"].value_counts(), sel["gender"].value_counts(), sel["file"].str.slice(0,15).value_counts().head(3))
tr=pl.read_csv(d+"fairface/fairface_label_train.csv"); va=pl.read_csv(d+"fairface/fairface_label_val.csv")
print(set(sel["file"].str.extract("FairFace/(train|val)/")))
al=pl.concat([tr,va]).with_columns(file="FairFace/"+pl.col("file"))
j=sel.join(al,on="file",how="left",suffix="_l"); print("labels equal",(j["age"]==j["age_l"]).sum(),(j["race"]==j["race_l"]).sum(),(j["gender"]==j["gender_l"]).sum())
c=al.group_by("age","gender","race").len().sort("len"); print(c.filter(pl.col("age").is_in(sel["age"].unique().to_list())).head(6))
print(sel["age"].unique().sort().to_list())
print(sel.head(12), sel["service_test"].value_counts())
